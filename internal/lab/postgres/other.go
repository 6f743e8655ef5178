//go:build !linux

package postgres

// Server is not available on this system.
type Server struct{}

// Start returns ErrAbsent.
func Start() (*Server, error) { return nil, ErrAbsent }

// Create returns ErrAbsent.
func (*Server) Create(string) error { return ErrAbsent }

// URL returns nothing.
func (*Server) URL(string) string { return "" }

// Stop does nothing.
func (*Server) Stop() {}
