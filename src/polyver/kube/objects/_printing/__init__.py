"""How objects become the rows of tables, for `polyver.kube.objects.tables`."""
