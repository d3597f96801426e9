"""Converts objects to the rows of tables, for `polyver.kube.objects.tables`."""
