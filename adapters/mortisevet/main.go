// Command mortisevet finds mistakes in programs that use the locks of mortise. It is a tool of go
// vet and has five rules, which package rules describes:
//
//	go install github.com/mortise-lock/mortise/adapters/mortisevet@latest
//	go vet -vettool=$(which mortisevet) ./...
//
// The flag -lockleak of go vet runs that rule alone, and -lockleak=false all others. A run exits
// with an error if a rule has found something. The command reads source code only: it needs no
// module of mortise, and it works with every version of mortise that has the names that it looks
// for.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/mortise-lock/mortise/adapters/mortisevet/rules"
)

func main() { unitchecker.Main(rules.All()...) }
