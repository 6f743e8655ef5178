module github.com/mortise-lock/mortise/internal/lab/site

go 1.26.0

require (
	github.com/mortise-lock/mortise v0.1.0
	github.com/yuin/goldmark v1.8.7
)

replace (
	github.com/mortise-lock/mortise => ../../..
	github.com/mortise-lock/mortise/locker => ../../../locker
)
