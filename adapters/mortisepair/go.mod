module github.com/mortise-lock/mortise/adapters/mortisepair

go 1.26.0

require github.com/mortise-lock/mortise/locker v0.1.0
