package main

import (
	"context"
	"runtime"
	"runtime/debug"

	"github.com/mortise-lock/mortise"
)

func version(_ context.Context, c *call) error {
	b := buildOf(debug.ReadBuildInfo())
	if c.json {
		return c.show(b)
	}
	text := "mortise " + b.Version
	if b.Revision != "" {
		text += ", revision " + b.Revision
		if b.Modified {
			text += " with changes"
		}
	}
	return c.printf("%s, %s %s\n", text, b.Go, b.System)
}

type build struct {
	Version  string
	Revision string `json:",omitempty"` // empty if installed through a module proxy
	Modified bool   `json:",omitempty"`
	Go       string
	System   string
}

func buildOf(info *debug.BuildInfo, ok bool) build {
	b := build{Version: mortise.Version(), Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
