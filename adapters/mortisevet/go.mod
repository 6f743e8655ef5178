module github.com/mortise-lock/mortise/adapters/mortisevet

go 1.26.0

require golang.org/x/tools v0.38.0 // with v0.37.0 go vet of Go 1.26 succeeds in spite of findings

require (
	golang.org/x/mod v0.29.0 // indirect
	golang.org/x/sync v0.17.0 // indirect
)
