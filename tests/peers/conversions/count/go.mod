module polyver.dev/tests/peers/conversions/count

go 1.22
