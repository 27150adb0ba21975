"""The numbers that rules ask for, a file each: pure functions of counts, engines and not advice."""
