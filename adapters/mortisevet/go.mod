module github.com/mortise-lock/mortise/adapters/mortisevet

go 1.26.0

require golang.org/x/tools v0.41.0

require (
	golang.org/x/mod v0.32.0 // indirect
	golang.org/x/sync v0.19.0 // indirect
)
