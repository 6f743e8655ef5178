//go:build nextrules

package main

import (
	"context"
	"fmt"

	"github.com/mortise-lock/mortise/internal/outside"
)

func (i *instance) withLater(ctx context.Context) context.Context {
	return outside.In(ctx, outside.World{Inside: func(in outside.Inside) { i.inside = in }})
}

func (i *instance) later() string {
	s := i.inside.Client.Status()
	return fmt.Sprintf("%d marks, %d refused, %d notes, %d refused", s.Marks, s.MarksRefused, s.Notes, s.NotesRefused)
}
