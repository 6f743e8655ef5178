package discovery

import (
	"context"
	"log/slog"
	"net"
)

// Config says which entries Join has and how they are looked up. It is copied by New.
type Config struct {
	// Entries are looked up. Check must have found no fault with them.
	Entries []string
	// Func returns further addresses, host:port each, as an entry would lead to. It is called now
	// and then, on a goroutine of its own, never twice at a time. Its context ends after two
	// seconds and with that of Run, and it has to return then. Nil means none.
	Func func(ctx context.Context) ([]string, error)
	// Self is the address of this instance, host:port: an entry that leads there alone leads to no
	// other instance.
	Self string
	// Resolve returns all addresses of a host, without port; a name that does not exist has none.
	// Nil means the system's resolver.
	Resolve func(ctx context.Context, host string) ([]string, error)
	// Services returns the host:port of every SRV record under a name; a name that does not exist
	// has none. Nil means the system's resolver.
	Services func(ctx context.Context, name string) ([]string, error)
	// Logger is told when Func panics. Nil means slog.Default.
	Logger *slog.Logger
}

// withDefaults returns a copy in which every nil that has a meaning is replaced by it.
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
