package discovery

import (
	"context"
	"log/slog"
	"net"
)

// Config contains the entries of Join and the functions that look them up. New copies it.
type Config struct {
	// Entries are the entries of Join. Check must have accepted each entry.
	Entries []string
	// Func returns further addresses, host:port each. It is called repeatedly on its own goroutine,
	// never concurrently. It must return when its context ends, which happens after two seconds or
	// when the context of Run ends. Func may be nil.
	Func func(ctx context.Context) ([]string, error)
	// Self is the address of this instance, host:port. Take and Trouble ignore it.
	Self string
	// Resolve returns all addresses of a host, without port, and none if the name does not exist.
	// If Resolve is nil, the system's resolver is used.
	Resolve func(ctx context.Context, host string) ([]string, error)
	// Services returns the host:port of every SRV record of a name, and none if the name does not
	// exist. If Services is nil, the system's resolver is used.
	Services func(ctx context.Context, name string) ([]string, error)
	// Kubernetes is set if this process runs in a pod. Advice then names settings of a Service.
	Kubernetes bool
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
