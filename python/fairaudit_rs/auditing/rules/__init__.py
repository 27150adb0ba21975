"""The numbers that legal rules require, as pure functions of counts: engines, not advice."""
