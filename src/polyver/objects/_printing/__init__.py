"""How objects become the rows of tables; what is public of it is in `polyver.objects.tables`."""
