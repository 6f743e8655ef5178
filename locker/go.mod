module github.com/mortise-lock/mortise/locker

go 1.26.0
