/* Answers to reviews, compiled. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

static PyObject *
built_with(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(PY_VERSION);
}

static PyMethodDef methods[] = {
    {"built_with", built_with, METH_NOARGS, "The version of the headers that it was built with."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_reviews",
    .m_doc = "Answers to reviews, compiled.",
    .m_size = 0,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__reviews(void)
{
    return PyModuleDef_Init(&definition);
}
