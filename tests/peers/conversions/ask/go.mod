module polyver.dev/tests/peers/conversions/ask

go 1.22
