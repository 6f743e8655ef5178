//go:build !linux

package storage

import "io"

func siteOf(io.Closer) string { return "" }
