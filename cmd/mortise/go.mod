module github.com/mortise-lock/mortise/cmd/mortise

go 1.26.0

require github.com/mortise-lock/mortise v0.0.0

replace github.com/mortise-lock/mortise => ../..
