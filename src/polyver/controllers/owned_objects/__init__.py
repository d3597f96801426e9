"""Objects that controllers apply on behalf of other objects, their owners.

Applications, composite resources, ActionSets and kinds declared in Python use these modules:

- `ownership`: apply and delete an object that names its owner as its controller. An object of
  another controller is refused, one without a controller is adopted.
- `inventory`: the record of the applied objects in an annotation of the owner, and the deletion of
  those that are no longer wanted.
- `index`: the applied objects as the API server has them, followed by watches, so that a change by
  another client is found and reverted.
- `revert_backoff`: the delay between two reverts of the same object.

Applications apply objects in other namespaces, where an owner reference cannot point to them. They
mark their objects with labels instead of `ownership`. Composite resources have the record in
`spec.crossplane.resourceRefs`, as in Crossplane, instead of the annotation.
"""
