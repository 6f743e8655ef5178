//go:build !unix

package main

// connLimit is the number of connections to one listener.
func connLimit() int { return maxConns }
