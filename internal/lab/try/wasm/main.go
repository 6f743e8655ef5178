//go:build js && wasm

// Command wasm runs a simulation for the page docs/try/index.html. It sets the global object
// mortise with four functions. All but end return the state as JSON text:
//
//	begin(seed)        begins a run; the seed is a text
//	pass(ms)           lets time pass until a moment of the run
//	act(letter, n)     does an act to a machine, now
//	end()              ends the run, and returns its last line
package main

import (
	"encoding/json"
	"strconv"
	"syscall/js"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/sim"
	"github.com/mortise-lock/mortise/internal/lab/try"
)

// state is what the page draws.
type state struct {
	sim.View
	Lines []sim.Line `json:"lines"` // since the last state
}

func main() {
	var show *sim.Show
	now := func() any {
		text, err := json.Marshal(state{show.View(), show.Lines()})
		if err != nil {
			panic(err)
		}
		return string(text)
	}
	js.Global().Set("mortise", map[string]any{
		"begin": js.FuncOf(func(_ js.Value, args []js.Value) any {
			seed, err := strconv.ParseUint(args[0].String(), 10, 63)
			if err != nil {
				return "null"
			}
			show = try.Begin(seed)
			return now()
		}),
		"pass": js.FuncOf(func(_ js.Value, args []js.Value) any {
			show.Pass(time.Duration(args[0].Int()) * time.Millisecond)
			return now()
		}),
		"act": js.FuncOf(func(_ js.Value, args []js.Value) any {
			show.Do(sim.Act(args[0].String()[0]), args[1].Int())
			return now()
		}),
		"end": js.FuncOf(func(js.Value, []js.Value) any { return show.End() }),
	})
	js.Global().Call("mortiseReady")
	select {}
}
