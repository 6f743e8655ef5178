package discovery

import (
	"context"
	"log/slog"
	"net"
)

// Config contains the entries of Join and the functions that look them up. New copies it.
type Config struct {
	// Entries are the entries of Join. Check must have accepted each.
	Entries []string
	// Func returns further addresses, host:port each. It is called repeatedly on its own goroutine,
	// never concurrently. It must return when its context ends, which is after two seconds or with
	// the context of Run. Nil means none.
	Func func(ctx context.Context) ([]string, error)
	// Self is the address of this instance, host:port. Take and Trouble ignore it.
	Self string
	// Resolve returns all addresses of a host, without port. A name that does not exist has none. Nil
	// means the system's resolver.
	Resolve func(ctx context.Context, host string) ([]string, error)
	// Services returns the host:port of every SRV record under a name. A name that does not exist has
	// none. Nil means the system's resolver.
	Services func(ctx context.Context, name string) ([]string, error)
	// Logger logs panics of Func. Nil means slog.Default.
	Logger *slog.Logger
}

func (cfg Config) withDefaults() *Config {
	if cfg.Resolve == nil {
		cfg.Resolve = net.DefaultResolver.LookupHost
	}
	if cfg.Services == nil {
		cfg.Services = systemServices
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &cfg
}
