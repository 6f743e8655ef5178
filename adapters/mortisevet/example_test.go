package main_test

import (
	"fmt"

	"github.com/mortise-lock/mortise/adapters/mortisevet/rules"
)

// A program can join the rules with other analyzers.
func Example() {
	for _, a := range rules.All() {
		fmt.Println(a.Name)
	}
	// Output:
	// lockleak
	// outerctx
	// copiedlock
	// droppedtoken
	// unlockerr
}
