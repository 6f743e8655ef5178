//go:build !nextrules

package main

import "context"

// withLater prepares the instance for the answers to the request "later".
func (i *instance) withLater(ctx context.Context) context.Context { return ctx }

// later describes what the client of the next version of the rules has sent.
func (i *instance) later() string { return "" }
