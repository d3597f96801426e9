/* ConversionReviews answered without making Python's objects of what is in them.
 *
 * A program says what the rules on the way from one version to another do; Python writes it, see
 * capabilities/apis/conversion/_program.py. Whatever is not as it nearly always is, is left to
 * Python: an object becomes a hole in the answer, or the whole review is not answered. Nothing is
 * decided here that Python would decide differently; where in doubt, nothing is decided.
 *
 * All memory of a review is in one arena, and whoever gives up jumps out; so nothing is ever freed
 * on the way, and no function has to say that it failed.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 200, MOST_FIELDS = 256, MOST_HOLES = 10000, LONG_REVIEW = 64 * 1024 };
enum { CHUNK = 32 * 1024, LARGEST_CHUNK = 32 * 1024 * 1024 };
enum { OWN_CHUNK = 12 * 1024, OWN_ANSWER = 8 * 1024 }; /* enough for an object of a few KB */
static const int64_t LARGE = 1000000000000000000; /* beyond this Python looks at numbers */

/* Memory. */

typedef struct Chunk {
    struct Chunk *next;
    size_t used, size;
    char *data;
} Chunk;

typedef struct {
    Chunk *chunks;
    Chunk *own; /* on the stack of whoever began, and so never freed */
    jmp_buf *failed; /* where to go without memory, or with too much of it */
} Arena;

static void *take(Arena *arena, size_t size) {
    Chunk *chunk = arena->chunks;
    size = (size + 15) & ~(size_t)15;
    if (!chunk || chunk->size - chunk->used < size) {
        size_t room = chunk ? 2 * chunk->size : CHUNK;
        if (room < size) room = size;
        Chunk *fresh = room > LARGEST_CHUNK ? NULL : malloc(sizeof(Chunk) + room);
        if (!fresh) longjmp(*arena->failed, 1);
        *fresh = (Chunk){.next = chunk, .size = room, .data = (char *)(fresh + 1)};
        arena->chunks = chunk = fresh;
    }
    void *found = chunk->data + chunk->used;
    chunk->used += size;
    return found;
}

static void give_back(Arena *arena) {
    for (Chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        if (chunk != arena->own) free(chunk);
    }
    arena->chunks = NULL;
}

/* JSON as it came, or as it was made: nothing if it does not begin anywhere. */

typedef struct {
    const char *at;
    size_t size;
} Text;

static bool same(Text one, Text other) {
    return one.size == other.size && !memcmp(one.at, other.at, one.size);
}

/* Programs. */

typedef struct Block Block;

typedef enum { TAKEN = 1, NOT_EMPTY = 2, PINNED = 4 } ContainerFlag;
typedef enum { GOES = 1, ALONE = 2 } CleanFlag;

typedef struct {
    int parent;
    int level;
    int flags;
    Text key;
} Container;

typedef struct {
    int container;
    int count;
    Text *names;
} Names;

typedef struct {
    int container;
    Text key;
} Port;

typedef struct {
    int container;
    int flags;
} Clean;

typedef enum {
    MOVE,
    DROP,
    CONST_WRITTEN,
    CONST_READ,
    VALUES,
    TO_WHOLE,
    TO_TEXT,
    TIMES,
    DIVIDED,
    SPLIT,
    JOIN,
    WRAP,
    UNWRAP,
    EACH,
    KEYED,
    UNKEYED,
    OPERATIONS
} Operation;

typedef struct {
    Operation operation;
    int reads, count_read; /* the first of the values that it reads, and how many */
    int count_written;
    Port *writes;
    int anchor; /* what must be there for a constant to be; -1 if nothing */
    int64_t number;
    int count_words;
    Text *words;
    Block *inside; /* NULL if nothing is done inside of its value */
} Rule;

struct Block {
    int containers, alloweds, refuseds, anchors, reads, cleans, strays, rules;
    Container *container;
    Names *allowed, *refused, *stray;
    Text *anchor;
    Port *read;
    Clean *clean;
    Rule *rule;
};

typedef struct {
    Text wanted, version, kind; /* with their quotation marks */
    Text carry;                 /* what is in metadata only if something is carried */
    int blocks;
    Block **block;
} Program;

typedef struct {
    Arena arena;
    int count;
    Program *program;
} Table;

/* Objects of which the fields are known. */

typedef struct Object Object;

typedef struct {
    Text text;
    Object *object; /* instead of the text, if it was opened */
} Value;

typedef struct {
    Text key; /* nothing if the field is gone */
    Value value;
} Field;

struct Object {
    Field *fields;
    int count, room, there;
};

typedef struct {
    size_t at, begin, end; /* where in the answer, and what of the body */
} Hole;

typedef struct {
    Arena arena;
    jmp_buf *unusual;
    const Table *table;
    const Program *newest;
    const char *begin;
    Text wanted;
    char *answer;
    char *own_answer; /* where it begins, and stays if it is short */
    size_t used, room;
    int converted;
    int kind; /* the program of the first object that was converted; -1 before */
    Hole *holes;
    int count_holes, room_holes;
} Run;

_Noreturn static void give_up(Run *run) { longjmp(*run->unusual, 1); }

static bool is_there(Value value) { return value.text.at || value.object; }

/* Reading JSON. All is checked that Python would check, and a little more. */

static inline const char *past_space(const char *at, const char *end) {
    if (at < end && *at > ' ') return at; /* as nearly always */
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')) at++;
    return at;
}

static const char *past(Run *run, const char *at, const char *end, char expected) {
    at = past_space(at, end);
    if (at == end || *at != expected) give_up(run);
    return at + 1;
}

#define EACH_BYTE(byte) (0x0101010101010101u * (uint64_t)(byte))

/* In eight bytes, a bit for each that is a quotation mark, a backslash or a control character.
 * Those behind the first may be wrong. */
static uint64_t specials(uint64_t word) {
    uint64_t quote = word ^ EACH_BYTE('"'), slash = word ^ EACH_BYTE('\\');
    uint64_t marks = ((quote - EACH_BYTE(1)) & ~quote) | ((slash - EACH_BYTE(1)) & ~slash);
    return (marks | ((word - EACH_BYTE(0x20)) & ~word)) & EACH_BYTE(0x80);
}

static const char *first_special(const char *at, const char *end) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (uint64_t word, marks; end - at >= 8; at += 8) {
        memcpy(&word, at, 8);
        if ((marks = specials(word))) return at + __builtin_ctzll(marks) / 8;
    }
#endif
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20) at++;
    return at;
}

static bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Half of a character, of which there must be another half, is left to Python. */
static bool is_surrogate(const char *digits) {
    return (*digits == 'd' || *digits == 'D') && !(digits[1] >= '0' && digits[1] <= '7');
}

static const char *past_escape(Run *run, const char *at, const char *end) {
    if (at == end) give_up(run);
    if (*at != 'u') {
        if (!strchr("\"\\/bfnrt", *at) || !*at) give_up(run);
        return at + 1;
    }
    if (end - at < 5) give_up(run);
    for (int each = 1; each < 5; each++)
        if (!is_hex(at[each])) give_up(run);
    if (is_surrogate(at + 1)) give_up(run);
    return at + 5;
}

/* A string whose first quotation mark was read; whether it has escapes is added to what was. */
static const char *past_string(Run *run, const char *at, const char *end, bool *escaped) {
    for (;;) {
        at = first_special(at, end);
        if (at == end || (unsigned char)*at < 0x20) give_up(run);
        if (*at == '"') return at + 1;
        *escaped = true;
        at = past_escape(run, at + 1, end);
    }
}

static const char *past_digits(Run *run, const char *at, const char *end) {
    if (at == end || *at < '0' || *at > '9') give_up(run);
    while (at < end && *at >= '0' && *at <= '9') at++;
    return at;
}

static const char *past_number(Run *run, const char *at, const char *end) {
    if (*at == '-') at++;
    at = at < end && *at == '0' ? at + 1 : past_digits(run, at, end);
    if (at < end && *at == '.') at = past_digits(run, at + 1, end);
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-')) at++;
        at = past_digits(run, at, end);
    }
    return at;
}

static const char *past_word(Run *run, const char *at, const char *end, const char *word) {
    size_t size = strlen(word);
    if ((size_t)(end - at) < size || memcmp(at, word, size)) give_up(run);
    return at + size;
}

static const char *past_value(Run *run, const char *at, const char *end, int depth);

static const char *past_list(Run *run, const char *at, const char *end, int depth) {
    at = past_space(at, end);
    if (at < end && *at == ']') return at + 1;
    for (;;) {
        at = past_space(past_value(run, at, end, depth), end);
        if (at == end) give_up(run);
        if (*at == ']') return at + 1;
        if (*at++ != ',') give_up(run);
    }
}

static const char *past_object(Run *run, const char *at, const char *end, int depth) {
    bool escaped = false;
    at = past_space(at, end);
    if (at < end && *at == '}') return at + 1;
    for (;;) {
        at = past_string(run, past(run, at, end, '"'), end, &escaped);
        at = past_space(past_value(run, past(run, at, end, ':'), end, depth), end);
        if (at == end) give_up(run);
        if (*at == '}') return at + 1;
        if (*at++ != ',') give_up(run);
    }
}

static const char *past_value(Run *run, const char *at, const char *end, int depth) {
    bool escaped = false;
    at = past_space(at, end);
    if (at == end || depth > MOST_DEPTH) give_up(run);
    switch (*at) {
    case '"': return past_string(run, at + 1, end, &escaped);
    case '{': return past_object(run, at + 1, end, depth + 1);
    case '[': return past_list(run, at + 1, end, depth + 1);
    case 't': return past_word(run, at, end, "true");
    case 'f': return past_word(run, at, end, "false");
    case 'n': return past_word(run, at, end, "null");
    default: return past_number(run, at, end);
    }
}

static Text read_value(Run *run, const char **at, const char *end) {
    const char *begin = past_space(*at, end);
    *at = past_value(run, begin, end, 0);
    return (Text){begin, (size_t)(*at - begin)};
}

/* A string that is written without escapes, with its quotation marks. */
static Text read_string(Run *run, const char **at, const char *end) {
    bool escaped = false;
    const char *begin = past(run, *at, end, '"') - 1;
    *at = past_string(run, begin + 1, end, &escaped);
    if (escaped) give_up(run);
    return (Text){begin, (size_t)(*at - begin)};
}

/* Whether there is another field of an object, or another item of a list; `at` is behind it. */
static bool goes_on(Run *run, const char **at, const char *end, bool first, char last) {
    *at = past_space(*at, end);
    if (*at == end) give_up(run);
    if (**at == last) {
        (*at)++;
        return false;
    }
    if (!first) *at = past(run, *at, end, ',');
    return true;
}

static Text read_key(Run *run, const char **at, const char *end) {
    Text key = read_string(run, at, end);
    *at = past(run, *at, end, ':');
    return key;
}

static bool is_string(Text text) { return text.size > 1 && *text.at == '"'; }

/* What is between the quotation marks of a string without escapes. */
static Text content_of(Run *run, Value value) {
    Text text = value.text;
    if (!is_string(text) || memchr(text.at, '\\', text.size)) give_up(run);
    return (Text){text.at + 1, text.size - 2};
}

/* Objects. */

static Field *found(const Object *object, Text key) {
    for (Field *each = object->fields, *end = each + object->count; each < end; each++)
        if (each->key.at && same(each->key, key)) return each;
    return NULL;
}

static void add(Run *run, Object *object, Text key, Value value) {
    if (object->count == object->room) {
        if (object->count >= MOST_FIELDS) give_up(run);
        int room = object->room ? 2 * object->room : 16;
        Field *fields = take(&run->arena, (size_t)room * sizeof(Field));
        if (object->count) memcpy(fields, object->fields, (size_t)object->count * sizeof(Field));
        object->fields = fields;
        object->room = room;
    }
    object->fields[object->count++] = (Field){key, value};
    object->there++;
}

static Value taken_out(Object *object, Text key) {
    Field *field = found(object, key);
    if (!field) return (Value){0};
    Value value = field->value;
    *field = (Field){0};
    object->there--;
    return value;
}

static Object *new_object(Run *run, int room) {
    Object *object = take(&run->arena, sizeof(Object));
    *object = (Object){.room = room};
    if (room) object->fields = take(&run->arena, (size_t)room * sizeof(Field));
    return object;
}

/* A bit for each name, the same for the same: most names are told apart by that. */
static uint64_t mark_of(Text key) {
    const unsigned char *at = (const unsigned char *)key.at;
    size_t middle = key.size / 2, last = key.size - 2;
    return (uint64_t)1 << ((key.size * 7 + at[1] * 5 + at[middle] * 3 + at[last]) & 63);
}

/* The fields of an object, from its brace on; no name may be there twice. */
static Object *opened(Run *run, const char **at, const char *end) {
    Object *object = new_object(run, 8); /* most are small, and room that is not used costs, too */
    uint64_t marks = 0;
    *at = past(run, *at, end, '{');
    while (goes_on(run, at, end, !object->count, '}')) {
        Text key = read_key(run, at, end);
        uint64_t mark = mark_of(key);
        if (marks & mark && found(object, key)) give_up(run);
        marks |= mark;
        add(run, object, key, (Value){read_value(run, at, end), NULL});
    }
    return object;
}

static Object *object_of(Run *run, Value value) {
    if (value.object) return value.object;
    const char *at = value.text.at;
    if (!at || *at != '{') give_up(run);
    return opened(run, &at, at + value.text.size);
}

static size_t length_of(Run *run, const Object *object, int depth);

static size_t length_of_value(Run *run, Value value, int depth) {
    return value.object ? length_of(run, value.object, depth) : value.text.size;
}

static size_t length_of(Run *run, const Object *object, int depth) {
    size_t size = 2;
    if (depth > MOST_DEPTH) give_up(run);
    for (Field *each = object->fields, *end = each + object->count; each < end; each++)
        if (each->key.at) size += each->key.size + 2 + length_of_value(run, each->value, depth + 1);
    return object->there ? size - 1 : size;
}

static char *put(char *to, Text text) {
    memcpy(to, text.at, text.size);
    return to + text.size;
}

static char *put_object(char *to, const Object *object);

static char *put_value(char *to, Value value) {
    return value.object ? put_object(to, value.object) : put(to, value.text);
}

static bool is_as_it_came(const Field *field) {
    const char *behind = field->key.at + field->key.size;
    return !field->value.object && field->value.text.at == behind + 1 && *behind == ':';
}

/* Fields that still stand beside each other are copied together. */
static char *put_object(char *to, const Object *object) {
    const char *begin = NULL, *end = NULL;
    *to++ = '{';
    char *first = to;
    for (Field *each = object->fields, *last = each + object->count; each < last; each++) {
        if (!each->key.at) continue;
        bool whole = is_as_it_came(each);
        if (whole && begin && each->key.at == end + 1 && *end == ',') {
            end = each->value.text.at + each->value.text.size;
            continue;
        }
        if (begin) to = put(to, (Text){begin, (size_t)(end - begin)});
        begin = NULL;
        if (to != first) *to++ = ',';
        if (whole) {
            begin = each->key.at;
            end = each->value.text.at + each->value.text.size;
            continue;
        }
        to = put(to, each->key);
        *to++ = ':';
        to = put_value(to, each->value);
    }
    if (begin) to = put(to, (Text){begin, (size_t)(end - begin)});
    *to++ = '}';
    return to;
}

/* Values. */

static Value text_made(Run *run, size_t size, char **to) {
    *to = take(&run->arena, size);
    return (Value){{*to, size}, NULL};
}

static Value quoted(Run *run, Text content) {
    char *to;
    Value made = text_made(run, content.size + 2, &to);
    *to++ = '"';
    to = put(to, content);
    *to = '"';
    return made;
}

/* A whole number as Python would write it, and not too large. */
static bool is_whole(Text text, int64_t *number) {
    const char *at = text.at, *end = at + text.size;
    bool negative = at < end && *at == '-';
    at += negative;
    if (at == end || end - at > 18 || (*at == '0' && (end - at > 1 || negative))) return false;
    int64_t found = 0;
    for (; at < end; at++) {
        if (*at < '0' || *at > '9') return false;
        found = found * 10 + (*at - '0');
    }
    *number = negative ? -found : found;
    return found < LARGE;
}

static int64_t whole_of(Run *run, Value value) {
    int64_t number;
    if (!value.text.at || !is_whole(value.text, &number)) give_up(run);
    return number;
}

static Value written(Run *run, int64_t number) {
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0) *--at = '-';
    char *to;
    Value made = text_made(run, (size_t)(digits + sizeof digits - at), &to);
    memcpy(to, at, made.text.size);
    return made;
}

/* Rules. */

static void convert(Run *run, const Block *block, Object *top);

static Value changed_inside(Run *run, const Rule *rule, Value value) {
    if (!rule->inside) return value;
    Object *object = object_of(run, value);
    convert(run, rule->inside, object);
    return (Value){.object = object};
}

static void check_list(Run *run, Value value) {
    if (!value.text.at || *value.text.at != '[') give_up(run);
}

static bool is_null(Value value) {
    return value.text.size == 4 && !memcmp(value.text.at, "null", 4);
}

typedef struct {
    Value *values;
    int count, room;
} List;

static void append(Run *run, List *list, Value value) {
    if (list->count == list->room) {
        int room = list->room ? 2 * list->room : 8;
        Value *values = take(&run->arena, (size_t)room * sizeof(Value));
        if (list->count) memcpy(values, list->values, (size_t)list->count * sizeof(Value));
        list->values = values;
        list->room = room;
    }
    list->values[list->count++] = value;
}

static Value list_made(Run *run, const List *list) {
    size_t size = 2;
    for (int each = 0; each < list->count; each++)
        size += length_of_value(run, list->values[each], 0) + 1;
    char *to;
    Value made = text_made(run, list->count ? size - 1 : size, &to);
    *to++ = '[';
    for (int each = 0; each < list->count; each++) {
        if (each) *to++ = ',';
        to = put_value(to, list->values[each]);
    }
    *to = ']';
    return made;
}

static Value each_changed(Run *run, const Rule *rule, Value value) {
    check_list(run, value);
    if (!rule->inside) return value;
    const char *at = value.text.at + 1, *end = value.text.at + value.text.size;
    List made = {0};
    while (goes_on(run, &at, end, !made.count, ']')) {
        Object *item = opened(run, &at, end);
        convert(run, rule->inside, item);
        append(run, &made, (Value){.object = item});
    }
    return list_made(run, &made);
}

static Value wrapped(Run *run, const Rule *rule, Value value) {
    if (is_null(value)) give_up(run);
    Value inside = changed_inside(run, rule, value);
    return list_made(run, &(List){&inside, 1, 1});
}

static Value unwrapped(Run *run, const Rule *rule, Value value) {
    check_list(run, value);
    const char *at = value.text.at + 1, *end = value.text.at + value.text.size;
    if (!goes_on(run, &at, end, true, ']')) give_up(run);
    Value only = {read_value(run, &at, end), NULL};
    if (is_null(only) || goes_on(run, &at, end, false, ']')) give_up(run);
    return changed_inside(run, rule, only);
}

static int compared(Text one, Text other) {
    size_t size = one.size < other.size ? one.size : other.size;
    int found = memcmp(one.at, other.at, size);
    return found ? found : (one.size > other.size) - (one.size < other.size);
}

static int compared_fields(const void *one, const void *other) {
    Text first = ((const Field *)one)->key, second = ((const Field *)other)->key;
    /* Without the second quotation mark, which is no part of the name. */
    return compared((Text){first.at, first.size - 1}, (Text){second.at, second.size - 1});
}

/* Items with a key, in the order of their keys, as a map; words are the key and the value's name. */
static Value keyed(Run *run, const Rule *rule, Value value) {
    check_list(run, value);
    const char *at = value.text.at + 1, *end = value.text.at + value.text.size;
    Object *made = new_object(run, 16);
    while (goes_on(run, &at, end, !made->count, ']')) {
        Object *item = opened(run, &at, end);
        Value name = taken_out(item, rule->words[0]);
        content_of(run, name);
        Field next = {name.text, {.object = item}};
        if (made->count && compared_fields(&made->fields[made->count - 1], &next) >= 0) give_up(run);
        if (rule->count_words > 1) {
            next.value = taken_out(item, rule->words[1]);
            if (!is_there(next.value) || item->there) give_up(run);
        }
        add(run, made, next.key, changed_inside(run, rule, next.value));
    }
    return (Value){.object = made};
}

static Value unkeyed(Run *run, const Rule *rule, Value value) {
    Object *given = object_of(run, value);
    List made = {0};
    int count = 0;
    for (int each = 0; each < given->count; each++) /* those that are gone leave no gaps */
        if (given->fields[each].key.at) given->fields[count++] = given->fields[each];
    given->count = count;
    qsort(given->fields, (size_t)count, sizeof(Field), compared_fields);
    for (int each = 0; each < count; each++) {
        Field *field = &given->fields[each];
        Value inside = changed_inside(run, rule, field->value);
        Object *item = new_object(run, 16);
        add(run, item, rule->words[0], (Value){field->key, NULL});
        if (rule->count_words > 1) {
            add(run, item, rule->words[1], inside);
        } else {
            Object *rest = object_of(run, inside);
            if (found(rest, rule->words[0])) give_up(run);
            for (int other = 0; other < rest->count; other++)
                if (rest->fields[other].key.at)
                    add(run, item, rest->fields[other].key, rest->fields[other].value);
        }
        append(run, &made, (Value){.object = item});
    }
    return list_made(run, &made);
}

static Value word_for(Run *run, const Rule *rule, Value value) {
    if (!value.text.at) give_up(run);
    for (int each = 0; each < rule->count_words; each += 2)
        if (same(rule->words[each], value.text)) return (Value){rule->words[each + 1], NULL};
    give_up(run);
}

static Value to_whole(Run *run, Value value) {
    Text content = content_of(run, value);
    int64_t number;
    if (!is_whole(content, &number)) give_up(run);
    return (Value){content, NULL};
}

static Value times(Run *run, const Rule *rule, Value value) {
    int64_t made;
    if (__builtin_mul_overflow(whole_of(run, value), rule->number, &made)) give_up(run);
    if (made == INT64_MIN) give_up(run);
    return written(run, made);
}

static Value divided(Run *run, const Rule *rule, Value value) {
    int64_t number = whole_of(run, value);
    if (number % rule->number) give_up(run);
    return written(run, number / rule->number);
}

/* For texts and their parts: the first words are the separator and what stands for a part that is
 * not there (nothing if there is no such text); those behind say which parts are numbers. */

enum { SEPARATOR, ABSENT, PARTS };

static bool is_number(const Rule *rule, int part) { return rule->words[PARTS + part].size > 0; }

static void split(Run *run, const Rule *rule, Value value, Value *made) {
    Text rest = content_of(run, value), separator = rule->words[SEPARATOR];
    Text absent = rule->words[ABSENT];
    int parts = rule->count_written, found = 0, missing = 0;
    for (bool more = true; more; found++) {
        Text part = rest;
        const char *at = NULL;
        if (found < parts - 1 && rest.size >= separator.size)
            for (size_t each = 0; each + separator.size <= rest.size && !at; each++)
                if (!memcmp(rest.at + each, separator.at, separator.size)) at = rest.at + each;
        more = at != NULL;
        if (more) {
            part.size = (size_t)(at - rest.at);
            rest = (Text){at + separator.size, rest.size - part.size - separator.size};
        }
        made[found] = (Value){0};
        if (absent.at && same(part, absent)) {
            missing++;
        } else if (is_number(rule, found)) {
            int64_t number;
            if (!is_whole(part, &number)) give_up(run);
            made[found].text = part;
        } else {
            made[found] = quoted(run, part);
        }
    }
    if (missing == parts || (absent.at && found < parts)) give_up(run);
    for (; found < parts; found++) made[found] = (Value){0};
}

static Text part_of(Run *run, const Rule *rule, int part, Value value) {
    Text absent = rule->words[ABSENT], separator = rule->words[SEPARATOR], text;
    if (is_number(rule, part)) {
        whole_of(run, value);
        text = value.text;
    } else {
        text = content_of(run, value);
    }
    if (absent.at && same(text, absent)) give_up(run);
    if (part < rule->count_read - 1)
        for (size_t each = 0; each + separator.size <= text.size; each++)
            if (!memcmp(text.at + each, separator.at, separator.size)) give_up(run);
    return text;
}

static Value joined(Run *run, const Rule *rule, const Value *values) {
    Text absent = rule->words[ABSENT], separator = rule->words[SEPARATOR];
    int parts = 0;
    size_t size = 2;
    Text *texts = take(&run->arena, (size_t)rule->count_read * sizeof(Text));
    for (int each = 0; each < rule->count_read; each++) {
        bool there = is_there(values[each]);
        if (!there && !absent.at) continue;
        if (parts != each) give_up(run); /* behind one that is not there */
        texts[parts] = there ? part_of(run, rule, each, values[each]) : absent;
        size += texts[parts++].size + separator.size;
    }
    char *to;
    Value made = text_made(run, size - separator.size, &to);
    *to++ = '"';
    for (int each = 0; each < parts; each++) {
        if (each) to = put(to, separator);
        to = put(to, texts[each]);
    }
    *to = '"';
    return made;
}

/* What a rule writes for what it reads, of which something is there. */
static void apply(Run *run, const Rule *rule, const Value *values, Value *made) {
    Value value = values[0];
    switch (rule->operation) {
    case MOVE: *made = changed_inside(run, rule, value); break;
    case VALUES: *made = word_for(run, rule, value); break;
    case TO_WHOLE: *made = to_whole(run, value); break;
    case TO_TEXT: whole_of(run, value); *made = quoted(run, value.text); break;
    case TIMES: *made = times(run, rule, value); break;
    case DIVIDED: *made = divided(run, rule, value); break;
    case SPLIT: split(run, rule, value, made); break;
    case JOIN: *made = joined(run, rule, values); break;
    case WRAP: *made = wrapped(run, rule, value); break;
    case UNWRAP: *made = unwrapped(run, rule, value); break;
    case EACH: *made = each_changed(run, rule, value); break;
    case KEYED: *made = keyed(run, rule, value); break;
    case UNKEYED: *made = unkeyed(run, rule, value); break;
    default: give_up(run); /* something would be lost */
    }
}

/* Blocks. */

static void open_containers(Run *run, const Block *block, Object **containers) {
    for (int each = 0; each < block->containers; each++) {
        const Container *about = &block->container[each];
        Object *parent = containers[about->parent];
        Field *field = parent && !(about->flags & TAKEN) ? found(parent, about->key) : NULL;
        containers[each + 1] = NULL;
        if (!field) continue;
        Object *object = object_of(run, field->value);
        field->value = (Value){.object = object};
        if (about->flags & NOT_EMPTY && !object->there) give_up(run);
        containers[each + 1] = object;
    }
}

static void check_refused(Run *run, const Names *names, int count, Object **containers) {
    for (int each = 0; each < count; each++) {
        Object *object = containers[names[each].container];
        for (int name = 0; object && name < names[each].count; name++)
            if (found(object, names[each].names[name])) give_up(run);
    }
}

static void check_allowed(Run *run, const Names *names, const Object *object) {
    for (int each = 0; each < object->count; each++) {
        Text key = object->fields[each].key;
        bool known = !key.at;
        for (int name = 0; !known && name < names->count; name++)
            known = same(names->names[name], key);
        if (!known) give_up(run);
    }
}

static void clean(Run *run, const Block *block, Object **containers) {
    for (int each = 0; each < block->cleans; each++) {
        const Clean *about = &block->clean[each];
        const Container *container = &block->container[about->container - 1];
        Object **object = &containers[about->container];
        if (*object && about->flags & GOES && !(*object)->there) {
            taken_out(containers[container->parent], container->key);
            *object = NULL;
        }
        if (*object && about->flags & ALONE) give_up(run);
    }
}

static Object *container_at(Run *run, const Block *block, Object **containers, int at) {
    if (containers[at]) return containers[at];
    const Container *about = &block->container[at - 1];
    if (about->flags & PINNED) give_up(run);
    Object *parent = container_at(run, block, containers, about->parent);
    containers[at] = new_object(run, 4);
    add(run, parent, about->key, (Value){.object = containers[at]});
    return containers[at];
}

static void write_values(
    Run *run, const Block *block, Object **containers, const Rule *rule, const Value *made
) {
    for (int each = 0; each < rule->count_written; each++) {
        const Port *port = &rule->writes[each];
        if (!is_there(made[each])) continue;
        Object *object = container_at(run, block, containers, port->container);
        add(run, object, port->key, made[each]);
    }
}

static void follow(
    Run *run, const Block *block, Object **containers, const Rule *rule, const Value *values,
    const bool *anchors
) {
    bool any = false, held = rule->anchor < 0 || anchors[rule->anchor];
    for (int each = 0; each < rule->count_read; each++) any |= is_there(values[each]);
    Value *made = take(&run->arena, (size_t)(rule->count_written + 1) * sizeof(Value));
    memset(made, 0, (size_t)(rule->count_written + 1) * sizeof(Value));
    if (rule->operation == CONST_READ) {
        if (held && !(values[0].text.at && same(values[0].text, rule->words[0]))) give_up(run);
    } else if (rule->operation == CONST_WRITTEN) {
        if (held) made->text = rule->words[0];
    } else if (any) {
        apply(run, rule, values, made);
    }
    write_values(run, block, containers, rule, made);
}

static void convert(Run *run, const Block *block, Object *top) {
    Object **containers = take(&run->arena, (size_t)(block->containers + 1) * sizeof(Object *));
    Value *values = take(&run->arena, (size_t)(block->reads + 1) * sizeof(Value));
    bool *anchors = take(&run->arena, (size_t)block->anchors + 1);
    containers[0] = top;
    open_containers(run, block, containers);
    for (int each = 0; each < block->alloweds; each++) {
        Object *object = containers[block->allowed[each].container];
        if (object) check_allowed(run, &block->allowed[each], object);
    }
    check_refused(run, block->refused, block->refuseds, containers);
    for (int each = 0; each < block->anchors; each++)
        anchors[each] = found(top, block->anchor[each]) != NULL;
    for (int each = 0; each < block->reads; each++) {
        Object *object = containers[block->read[each].container];
        values[each] = object ? taken_out(object, block->read[each].key) : (Value){0};
    }
    clean(run, block, containers);
    check_refused(run, block->stray, block->strays, containers);
    for (int each = 0; each < block->rules; each++) {
        const Rule *rule = &block->rule[each];
        follow(run, block, containers, rule, values + rule->reads, anchors);
    }
}

/* Answers. */

static void make_room(Run *run, size_t size) {
    if (run->room - run->used >= size) return;
    size_t room = 2 * run->room + size;
    char *answer = realloc(run->answer == run->own_answer ? NULL : run->answer, room);
    if (!answer) longjmp(*run->arena.failed, 1);
    if (run->answer == run->own_answer && run->used) memcpy(answer, run->answer, run->used);
    run->answer = answer;
    run->room = room;
}

static void say(Run *run, Text text) {
    make_room(run, text.size);
    put(run->answer + run->used, text);
    run->used += text.size;
}

#define TEXT(literal) ((Text){literal, sizeof(literal) - 1})

static bool is_for(const Program *program, Text wanted, Text version, Text kind) {
    return same(program->version, version) && same(program->wanted, wanted) &&
           same(program->kind, kind);
}

static const Program *program_for(Run *run, Text version, Text kind) {
    const Table *table = run->table;
    if (run->newest && is_for(run->newest, run->wanted, version, kind)) return run->newest;
    for (int each = 0; each < table->count; each++)
        if (is_for(&table->program[each], run->wanted, version, kind))
            return run->newest = &table->program[each];
    give_up(run);
}

/* Whether a text has a part; its slash, if it has one, is rarer than its letters. */
static bool has(Text text, Text part) {
    const char *slash = memchr(part.at, '/', part.size), *end = text.at + text.size;
    size_t before = slash ? (size_t)(slash - part.at) : 0, behind = part.size - before;
    if (text.size < part.size) return false;
    for (const char *at = text.at + before; (size_t)(end - at) >= behind; at++) {
        at = memchr(at, part.at[before], (size_t)(end - at) - behind + 1);
        if (!at) return false;
        if (!memcmp(at - before, part.at, part.size)) return true;
    }
    return false;
}

enum { API_VERSION, KIND, METADATA, SPEC, STATUS, TOPS };
static const Text TOP[TOPS] = {
    {"\"apiVersion\"", 12}, {"\"kind\"", 6}, {"\"metadata\"", 10}, {"\"spec\"", 6},
    {"\"status\"", 8},
};

static int place_of(Run *run, Text key) {
    for (int each = 0; each < TOPS; each++)
        if (same(TOP[each], key)) return each;
    give_up(run);
}

/* An object with nothing but the five fields that nearly all have. */
static Object *top_of(Run *run, const char **at, const char *end) {
    Value values[TOPS] = {0};
    *at = past(run, *at, end, '{');
    for (bool first = true; goes_on(run, at, end, first, '}'); first = false) {
        int place = place_of(run, read_key(run, at, end));
        if (is_there(values[place])) give_up(run);
        if (place == SPEC)
            values[place].object = opened(run, at, end);
        else if (place == API_VERSION || place == KIND)
            values[place].text = read_string(run, at, end);
        else
            values[place].text = read_value(run, at, end);
    }
    if (!values[API_VERSION].text.at || !values[KIND].text.at) give_up(run);
    Object *top = new_object(run, TOPS + 4);
    for (int each = 0; each < TOPS; each++)
        if (is_there(values[each])) add(run, top, TOP[each], values[each]);
    return top;
}

static void convert_one(Run *run, const char **at, const char *end) {
    Object *top = top_of(run, at, end);
    Text version = top->fields[API_VERSION].value.text, kind = top->fields[KIND].value.text;
    const Program *program = program_for(run, version, kind);
    int place = (int)(program - run->table->program);
    if (run->kind >= 0 && !same(run->table->program[run->kind].kind, kind)) give_up(run);
    Field *metadata = found(top, TOP[METADATA]);
    if (program->carry.size && metadata && has(metadata->value.text, program->carry)) give_up(run);
    for (int each = 0; each < program->blocks; each++) convert(run, program->block[each], top);
    top->fields[API_VERSION].value = (Value){run->wanted, NULL};
    size_t size = length_of(run, top, 0);
    make_room(run, size);
    put_object(run->answer + run->used, top);
    run->used += size;
    run->converted++;
    if (run->kind < 0) run->kind = place;
}

static void note_hole(Run *run, const char *begin, const char *end) {
    if (run->count_holes == MOST_HOLES) give_up(run);
    if (run->count_holes == run->room_holes) {
        int room = run->room_holes ? 2 * run->room_holes : 16;
        Hole *holes = realloc(run->holes, (size_t)room * sizeof(Hole));
        if (!holes) longjmp(*run->arena.failed, 1);
        run->holes = holes;
        run->room_holes = room;
    }
    size_t from = (size_t)(begin - run->begin), to = (size_t)(end - run->begin);
    run->holes[run->count_holes++] = (Hole){run->used, from, to};
}

/* What was opened for one object is not needed for the next. */
static void forget(Arena *arena) {
    Chunk *newest = arena->chunks;
    if (!newest) return;
    arena->chunks = newest->next;
    give_back(arena);
    *newest = (Chunk){.size = newest->size, .data = newest->data};
    arena->chunks = newest;
}

static bool is_converted(Run *run, const char *begin, const char *end, const char **behind) {
    jmp_buf here;
    const char *at = begin;
    run->unusual = &here;
    if (setjmp(here)) return false;
    convert_one(run, &at, end);
    *behind = at;
    return true;
}

static void convert_next(Run *run, const char **at, const char *end) {
    jmp_buf *whole = run->unusual;
    size_t used = run->used;
    const char *begin = past_space(*at, end);
    bool converted = is_converted(run, begin, end, at);
    run->unusual = whole;
    forget(&run->arena);
    if (converted) return;
    run->used = used;
    *at = past_value(run, begin, end, 0);
    note_hole(run, begin, *at);
}

static void convert_all(Run *run, const char **at, const char *end) {
    *at = past(run, *at, end, '[');
    for (bool first = true; goes_on(run, at, end, first, ']'); first = false) {
        if (!first) say(run, TEXT(","));
        convert_next(run, at, end);
    }
}

static void answer_request(Run *run, const char **at, const char *end) {
    Text uid = {0};
    bool first = true, done = false;
    *at = past(run, *at, end, '{');
    for (; goes_on(run, at, end, first, '}'); first = false) {
        Text key = read_key(run, at, end);
        if (same(key, TEXT("\"uid\""))) {
            if (uid.at || done) give_up(run);
            uid = read_string(run, at, end);
        } else if (same(key, TEXT("\"desiredAPIVersion\""))) {
            if (run->wanted.at) give_up(run);
            run->wanted = read_string(run, at, end);
        } else if (same(key, TEXT("\"objects\""))) {
            if (done || !run->wanted.at) give_up(run);
            say(run, TEXT(",\"response\":{\"uid\":"));
            say(run, uid.at ? uid : TEXT("\"\""));
            say(run, TEXT(",\"convertedObjects\":["));
            convert_all(run, at, end);
            say(run, TEXT("],\"result\":{\"status\":\"Success\"}}}"));
            done = true;
        } else {
            read_value(run, at, end);
        }
    }
    if (!done) give_up(run);
}

static bool is_known_version(Text version) {
    return same(version, TEXT("\"apiextensions.k8s.io/v1\"")) ||
           same(version, TEXT("\"apiextensions.k8s.io/v1beta1\""));
}

static void answer_review(Run *run, const char *at, const char *end) {
    Text version = {0}, kind = {0};
    bool first = true, done = false;
    at = past(run, at, end, '{');
    for (; goes_on(run, &at, end, first, '}'); first = false) {
        Text key = read_key(run, &at, end);
        if (same(key, TEXT("\"apiVersion\""))) {
            if (version.at) give_up(run);
            version = read_string(run, &at, end);
        } else if (same(key, TEXT("\"kind\""))) {
            if (kind.at) give_up(run);
            kind = read_string(run, &at, end);
        } else if (same(key, TEXT("\"request\""))) {
            if (done || !version.at || !is_known_version(version)) give_up(run);
            if (!kind.at || !same(kind, TEXT("\"ConversionReview\""))) give_up(run);
            say(run, TEXT("{\"apiVersion\":"));
            say(run, version);
            say(run, TEXT(",\"kind\":\"ConversionReview\""));
            answer_request(run, &at, end);
            done = true;
        } else {
            read_value(run, &at, end);
        }
    }
    if (!done || past_space(at, end) != end) give_up(run);
}

/* Whether a review was answered; without memory it was not, and Python may have more luck. */
static bool is_answered(Run *run, const char *body, size_t size) {
    jmp_buf here;
    run->unusual = run->arena.failed = &here;
    run->begin = body;
    if (setjmp(here)) return false;
    make_room(run, size + size / 8 + 512);
    answer_review(run, body, body + size);
    return true;
}

/* Programs, read from what Python wrote: tuples, numbers and bytes. */

static bool refuse(PyObject *error, const char *why) {
    if (!PyErr_Occurred()) PyErr_SetString(error, why);
    return false;
}

static PyObject *item_of(PyObject *tuple, Py_ssize_t at) {
    if (PyTuple_Check(tuple) && at < PyTuple_Size(tuple)) return PyTuple_GetItem(tuple, at);
    refuse(PyExc_TypeError, "a program is made of tuples that have all their items");
    return NULL;
}

static bool read_text(Arena *arena, PyObject *given, Text *to) {
    char *at;
    Py_ssize_t size;
    if (!given || PyBytes_AsStringAndSize(given, &at, &size) < 0) return false;
    char *copy = take(arena, (size_t)size + 1);
    memcpy(copy, at, (size_t)size);
    copy[size] = 0; /* somebody may look whether a colon is behind it */
    *to = (Text){copy, (size_t)size};
    return true;
}

static bool is_json(Text text) {
    jmp_buf here;
    Run run = {.unusual = &here};
    if (setjmp(here)) return false;
    return past_value(&run, text.at, text.at + text.size, 0) == text.at + text.size;
}

static bool is_name(Text text) { return is_string(text) && is_json(text); }

static bool read_name(Arena *arena, PyObject *given, Text *to) {
    if (!read_text(arena, given, to)) return false;
    return is_name(*to) || refuse(PyExc_ValueError, "a name in a program is no text");
}

static bool read_number(PyObject *given, int64_t least, int64_t most, int64_t *to) {
    if (!given) return false;
    *to = PyLong_AsLongLong(given);
    bool failed = *to == -1 && PyErr_Occurred();
    if (failed && !PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
    if (!failed && *to >= least && *to <= most) return true;
    PyErr_Clear();
    return refuse(PyExc_ValueError, "a number in a program is out of its range");
}

static bool read_int(PyObject *given, int least, int most, int *to) {
    int64_t found;
    if (!read_number(given, least, most, &found)) return false;
    *to = (int)found;
    return true;
}

enum { MOST_ITEMS = 10000, MOST_LEVELS = 50 };

/* How many items a tuple has, and room for as many things; NULL if it is none. */
static void *read_count(Arena *arena, PyObject *given, size_t size, int *count) {
    Py_ssize_t found = given && PyTuple_Check(given) ? PyTuple_Size(given) : -1;
    if (found < 0) refuse(PyExc_TypeError, "a program is made of tuples");
    if (found > MOST_ITEMS) refuse(PyExc_ValueError, "a program is too large");
    if (found < 0 || found > MOST_ITEMS) return NULL;
    *count = (int)found;
    return memset(take(arena, ((size_t)found + 1) * size), 0, ((size_t)found + 1) * size);
}

static Text *read_texts(Arena *arena, PyObject *given, int *count) {
    Text *texts = read_count(arena, given, sizeof(Text), count);
    for (int each = 0; texts && each < *count; each++) {
        PyObject *item = item_of(given, each);
        if (item != Py_None && !read_text(arena, item, &texts[each])) return NULL;
    }
    return texts;
}

static Names *read_names(Arena *arena, PyObject *given, int containers, int *count) {
    Names *names = read_count(arena, given, sizeof(Names), count);
    for (int each = 0; names && each < *count; each++) {
        PyObject *item = item_of(given, each);
        if (!item || !read_int(item_of(item, 0), 0, containers, &names[each].container) ||
            !(names[each].names = read_texts(arena, item_of(item, 1), &names[each].count)))
            return NULL;
    }
    return names;
}

static Port *read_ports(Arena *arena, PyObject *given, int containers, int *count) {
    Port *ports = read_count(arena, given, sizeof(Port), count);
    for (int each = 0; ports && each < *count; each++) {
        PyObject *item = item_of(given, each);
        if (!item || !read_int(item_of(item, 0), 0, containers, &ports[each].container) ||
            !read_name(arena, item_of(item, 1), &ports[each].key))
            return NULL;
    }
    return ports;
}

static Block *read_block(Arena *arena, PyObject *given, int depth);

static bool all_words(const Rule *rule, bool (*are)(Text)) {
    for (int each = 0; each < rule->count_words; each++)
        if (!rule->words[each].at || !are(rule->words[each])) return false;
    return true;
}

static bool fits(const Rule *rule) {
    int words = rule->count_words, reads = rule->count_read, writes = rule->count_written;
    switch (rule->operation) {
    case DROP: return reads <= 1 && writes <= 1;
    case CONST_WRITTEN: return !reads && writes == 1 && words == 1 && all_words(rule, is_json);
    case CONST_READ: return reads == 1 && !writes && words == 1 && all_words(rule, is_json);
    case VALUES: return reads == 1 && writes == 1 && !(words % 2) && all_words(rule, is_json);
    case TIMES:
    case DIVIDED: return reads == 1 && writes == 1 && rule->number;
    case SPLIT: return reads == 1 && words == PARTS + writes && writes && rule->words[0].size;
    case JOIN: return writes == 1 && words == PARTS + reads && reads && rule->words[0].size;
    case KEYED:
    case UNKEYED:
        return reads == 1 && writes == 1 && words && words <= 2 && all_words(rule, is_name);
    default: return reads == 1 && writes == 1;
    }
}

/* (operation, first read, count of reads, writes, anchor, number, words, inside or None); what is
 * read before is read by others. */
static bool read_rule(
    Arena *arena, PyObject *given, const Block *block, Rule *rule, int before, int depth
) {
    int operation;
    if (!given || !read_int(item_of(given, 0), 0, OPERATIONS - 1, &operation) ||
        !read_int(item_of(given, 1), before, block->reads, &rule->reads) ||
        !read_int(item_of(given, 2), 0, block->reads - rule->reads, &rule->count_read) ||
        !(rule->writes =
              read_ports(arena, item_of(given, 3), block->containers, &rule->count_written)) ||
        !read_int(item_of(given, 4), -1, block->anchors - 1, &rule->anchor) ||
        !read_number(item_of(given, 5), -LARGE, LARGE, &rule->number) ||
        !(rule->words = read_texts(arena, item_of(given, 6), &rule->count_words)))
        return false;
    PyObject *inside = item_of(given, 7);
    if (!inside) return false;
    if (inside != Py_None && !(rule->inside = read_block(arena, inside, depth + 1))) return false;
    rule->operation = (Operation)operation;
    if (fits(rule)) return true;
    return refuse(PyExc_ValueError, "a rule of a program is not as its operation wants it");
}

static const char TOO_MANY_LEVELS[] = "a program has too many levels";

static bool read_containers(Arena *arena, PyObject *given, Block *block) {
    block->container = read_count(arena, given, sizeof(Container), &block->containers);
    for (int each = 0; block->container && each < block->containers; each++) {
        Container *to = &block->container[each];
        PyObject *item = item_of(given, each);
        /* A parent comes before what it holds. */
        if (!item || !read_int(item_of(item, 0), 0, each, &to->parent) ||
            !read_name(arena, item_of(item, 1), &to->key) ||
            !read_int(item_of(item, 2), 0, 7, &to->flags))
            return false;
        to->level = to->parent ? block->container[to->parent - 1].level + 1 : 1;
        if (to->level > MOST_LEVELS) return refuse(PyExc_ValueError, TOO_MANY_LEVELS);
    }
    return block->container;
}

/* Whether nothing is opened twice, or opened and taken: then no object can get into itself. */
static bool is_apart(const Block *block) {
    for (int each = 0; each < block->containers; each++) {
        const Container *one = &block->container[each];
        for (int other = 0; other < each; other++)
            if (block->container[other].parent == one->parent &&
                same(block->container[other].key, one->key))
                return false;
        for (int read = 0; read < block->reads && !(one->flags & TAKEN); read++)
            if (block->read[read].container == one->parent &&
                same(block->read[read].key, one->key))
                return false;
    }
    return true;
}

static bool read_cleans(Arena *arena, PyObject *given, Block *block) {
    block->clean = read_count(arena, given, sizeof(Clean), &block->cleans);
    for (int each = 0; block->clean && each < block->cleans; each++) {
        PyObject *item = item_of(given, each);
        if (!item || !read_int(item_of(item, 0), 1, block->containers, &block->clean[each].container) ||
            !read_int(item_of(item, 1), 0, 3, &block->clean[each].flags))
            return false;
    }
    return block->clean;
}

/* (containers, allowed, refused, anchors, reads, cleans, strays, rules) */
static Block *read_block(Arena *arena, PyObject *given, int depth) {
    Block *block = take(arena, sizeof(Block));
    *block = (Block){0};
    if (depth > MOST_LEVELS && !refuse(PyExc_ValueError, TOO_MANY_LEVELS)) return NULL;
    if (!read_containers(arena, item_of(given, 0), block) ||
        !(block->allowed =
              read_names(arena, item_of(given, 1), block->containers, &block->alloweds)) ||
        !(block->refused =
              read_names(arena, item_of(given, 2), block->containers, &block->refuseds)) ||
        !(block->anchor = read_texts(arena, item_of(given, 3), &block->anchors)) ||
        !(block->read = read_ports(arena, item_of(given, 4), block->containers, &block->reads)) ||
        !read_cleans(arena, item_of(given, 5), block) ||
        !(block->stray = read_names(arena, item_of(given, 6), block->containers, &block->strays)))
        return NULL;
    if (!is_apart(block) && !refuse(PyExc_ValueError, "a program opens a field twice")) return NULL;
    PyObject *rules = item_of(given, 7);
    block->rule = rules ? read_count(arena, rules, sizeof(Rule), &block->rules) : NULL;
    for (int each = 0, reads = 0; block->rule && each < block->rules; each++) {
        Rule *rule = &block->rule[each];
        if (!read_rule(arena, item_of(rules, each), block, rule, reads, depth)) return NULL;
        reads = rule->reads + rule->count_read;
    }
    return block->rule ? block : NULL;
}

/* (wanted, version, kind, carry, blocks) */
static bool read_program(Arena *arena, PyObject *given, Program *program) {
    if (!given || !read_text(arena, item_of(given, 0), &program->wanted) ||
        !read_text(arena, item_of(given, 1), &program->version) ||
        !read_text(arena, item_of(given, 2), &program->kind) ||
        !read_text(arena, item_of(given, 3), &program->carry))
        return false;
    PyObject *blocks = item_of(given, 4);
    program->block = blocks ? read_count(arena, blocks, sizeof(Block *), &program->blocks) : NULL;
    for (int each = 0; program->block && each < program->blocks; each++) {
        PyObject *block = item_of(blocks, each);
        if (!block || !(program->block[each] = read_block(arena, block, 0))) return false;
    }
    return program->block;
}

/* Python's side. */

static const char TABLE[] = "polyver.native.table";

static void free_table(PyObject *capsule) {
    Table *table = PyCapsule_GetPointer(capsule, TABLE);
    if (!table) return;
    give_back(&table->arena);
    free(table);
}

static bool read_table(PyObject *programs, Table *table) {
    jmp_buf failed;
    table->arena.failed = &failed;
    if (setjmp(failed)) {
        PyErr_NoMemory();
        return false;
    }
    table->program = read_count(&table->arena, programs, sizeof(Program), &table->count);
    for (int each = 0; table->program && each < table->count; each++)
        if (!read_program(&table->arena, item_of(programs, each), &table->program[each]))
            return false;
    return table->program;
}

static PyObject *py_table(PyObject *module, PyObject *programs) {
    (void)module;
    Table *table = calloc(1, sizeof(Table));
    if (!table) return PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(table, TABLE, free_table);
    if (!capsule) {
        free(table);
        return NULL;
    }
    if (read_table(programs, table)) return capsule;
    Py_DECREF(capsule);
    return NULL;
}

/* What was wanted, and where the holes are; None without any. */
static PyObject *holes_of(const Run *run) {
    if (!run->count_holes) return Py_NewRef(Py_None);
    PyObject *holes = PyTuple_New(run->count_holes);
    for (int each = 0; holes && each < run->count_holes; each++) {
        const Hole *hole = &run->holes[each];
        PyObject *told = Py_BuildValue(
            "(nnn)", (Py_ssize_t)hole->at, (Py_ssize_t)hole->begin, (Py_ssize_t)hole->end
        );
        if (!told || PyTuple_SetItem(holes, each, told) < 0) Py_CLEAR(holes);
    }
    if (!holes) return NULL;
    Text wanted = {run->wanted.at + 1, run->wanted.size - 2};
    return Py_BuildValue("(s#N)", wanted.at, (Py_ssize_t)wanted.size, holes);
}

static PyObject *told(const Run *run) {
    PyObject *parts[] = {
        PyBytes_FromStringAndSize(run->answer, (Py_ssize_t)run->used),
        PyLong_FromLong(run->converted),
        PyLong_FromLong(run->kind),
        holes_of(run),
    };
    PyObject *made = PyTuple_New(4);
    for (int each = 0; each < 4; each++) {
        if (made && parts[each]) {
            PyTuple_SetItem(made, each, parts[each]);
        } else {
            Py_XDECREF(parts[each]);
            Py_CLEAR(made);
        }
    }
    return made;
}

/* What a short review needs, on the stack. */
typedef struct {
    max_align_t room[OWN_CHUNK / sizeof(max_align_t)];
    char answer[OWN_ANSWER];
    Chunk chunk;
} Own;

static Run new_run(Own *own, const Table *table) {
    own->chunk = (Chunk){.size = sizeof own->room, .data = (char *)own->room};
    return (Run){
        .arena = {.chunks = &own->chunk, .own = &own->chunk},
        .table = table,
        .answer = own->answer,
        .own_answer = own->answer,
        .room = sizeof own->answer,
        .kind = -1,
    };
}

static void end_run(Run *run) {
    give_back(&run->arena);
    if (run->answer != run->own_answer) free(run->answer);
    free(run->holes);
}

static PyObject *py_answer(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "answer() takes a table and a body");
        return NULL;
    }
    const Table *table = PyCapsule_GetPointer(given[0], TABLE);
    Py_buffer body;
    if (!table || PyObject_GetBuffer(given[1], &body, PyBUF_SIMPLE) < 0) return NULL;
    Own own;
    Run run = new_run(&own, table);
    PyThreadState *paused = body.len > LONG_REVIEW ? PyEval_SaveThread() : NULL;
    bool answered = is_answered(&run, body.buf, (size_t)body.len);
    if (paused) PyEval_RestoreThread(paused);
    PyObject *made = answered ? told(&run) : Py_NewRef(Py_None);
    end_run(&run);
    PyBuffer_Release(&body);
    return made;
}

static bool is_ascii(Text text) {
    unsigned char all = 0;
    for (size_t each = 0; each < text.size; each++) all |= (unsigned char)text.at[each];
    return all < 0x80;
}

/* The body of a request that is this head, around the length of all that is behind it. */
static Text body_of(Text request, Text start, Text rest) {
    const char *at = request.at + start.size, *end = request.at + request.size;
    size_t length = 0;
    int digits = 0;
    if (request.size < start.size || memcmp(request.at, start.at, start.size)) return (Text){0};
    for (; at < end && *at >= '0' && *at <= '9' && digits < 8; at++, digits++)
        length = length * 10 + (size_t)(*at - '0');
    if (!digits || (size_t)(end - at) != rest.size + length) return (Text){0};
    if (memcmp(at, rest.at, rest.size)) return (Text){0};
    return (Text){at + rest.size, length};
}

static PyObject *sent(const Run *run, Text beginning) {
    char behind[24], *to;
    int size = PyOS_snprintf(behind, sizeof behind, "%zu\r\n\r\n", run->used);
    size_t whole = beginning.size + (size_t)size + run->used;
    PyObject *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)whole);
    if (!made) return NULL;
    to = put(PyBytes_AsString(made), beginning);
    to = put(to, (Text){behind, (size_t)size});
    put(to, (Text){run->answer, run->used});
    return Py_BuildValue("(Nii)", made, run->converted, run->kind);
}

static PyObject *py_respond(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    if (count != 6) {
        PyErr_SetString(PyExc_TypeError, "respond() takes a table, a buffer and four more");
        return NULL;
    }
    const Table *table = PyCapsule_GetPointer(given[0], TABLE);
    Py_ssize_t size = PyLong_AsSsize_t(given[2]), sizes[3];
    char *texts[3];
    for (int each = 0; each < 3; each++)
        if (PyBytes_AsStringAndSize(given[3 + each], &texts[each], &sizes[each]) < 0) return NULL;
    Py_buffer read;
    if (!table || PyErr_Occurred() || PyObject_GetBuffer(given[1], &read, PyBUF_SIMPLE) < 0)
        return NULL;
    Text start = {texts[0], (size_t)sizes[0]}, rest = {texts[1], (size_t)sizes[1]};
    Text request = {read.buf, size >= 0 && size <= read.len ? (size_t)size : 0};
    Text body = body_of(request, start, rest);
    Own own;
    Run run = new_run(&own, table);
    bool answered = body.at && is_ascii(body) && is_answered(&run, body.at, body.size);
    Text beginning = {texts[2], (size_t)sizes[2]};
    PyObject *made = answered && !run.count_holes ? sent(&run, beginning) : Py_NewRef(Py_None);
    end_run(&run);
    PyBuffer_Release(&read);
    return made;
}

static PyMethodDef functions[] = {
    {"table", py_table, METH_O, "Programs that reviews are answered with."},
    {"answer", (PyCFunction)(void (*)(void))py_answer, METH_FASTCALL,
     "The answer to a body, how many objects were converted, by a program for which kind, and the "
     "holes in it; None if it cannot be answered."},
    {"respond", (PyCFunction)(void (*)(void))py_respond, METH_FASTCALL,
     "The same for a request in the first bytes of a buffer: how long it is, its head before and "
     "behind the length, and how the answer begins, up to its length. None if anything is left out."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_reviews", "Answers to ConversionReviews.", 0, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__reviews(void) { return PyModuleDef_Init(&definition); }
