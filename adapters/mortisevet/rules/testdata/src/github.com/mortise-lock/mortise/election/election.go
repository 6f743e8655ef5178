package election

import (
	"context"

	"github.com/mortise-lock/mortise"
)

type Election struct{}

func (e *Election) Campaign(ctx context.Context, value string) (*Leadership, error) { return nil, nil }
func (e *Election) Run(ctx context.Context, value string, fn func(ctx context.Context, l *Leadership) error) error {
	return nil
}

type Leadership struct{}

func (l *Leadership) Token() mortise.Token                             { return 0 }
func (l *Leadership) Err() error                                       { return nil }
func (l *Leadership) Beat()                                            {}
func (l *Leadership) Context(parent context.Context) context.Context   { return nil }
func (l *Leadership) Done() <-chan struct{}                            { return nil }
func (l *Leadership) Proclaim(ctx context.Context, value string) error { return nil }
func (l *Leadership) Regain(ctx context.Context) error                 { return nil }
func (l *Leadership) Resign(ctx context.Context) error                 { return nil }
