"""Objects that controllers apply on behalf of other objects, their owners.

Applications, composite resources, ActionSets and kinds declared in Python use these modules:

- `ownership`: apply and delete an object that names its owner as its controller (in its owner
references). An object with another controller is refused; an object without a controller is
adopted.
- `inventory`: record the applied objects in an annotation of the owner, and delete applied objects
that are no longer wanted.
- `index`: watch the applied objects, so that a change by another client is found and reverted.
- `revert_backoff`: the delay between two reverts of the same object.

An application may apply objects in other namespaces, where an owner reference to the application
would be invalid. So applications mark their objects with labels, and do not use `ownership`.
Composite resources record the applied objects in `spec.crossplane.resourceRefs`, as in Crossplane,
and not in an annotation.
"""
