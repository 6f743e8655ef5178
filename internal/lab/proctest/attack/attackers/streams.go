//go:build linux

package attackers

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/attack"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// The attacks in this file send frames of HTTP/2 on a connection for calls that a guest has opened.

const (
	floodFor = 5 * time.Second
	inTurn   = 100 // frames, or streams, that one write begins

	// maxFlood is the number of frames that a connection may take within floodFor if the instance does
	// not end it. If the instance reads slowly, the socket takes fewer.
	maxFlood = 50_000
)

// flood sends frames until the instance ends the connection, or floodFor has passed.
func (a *attacker) flood(ctx context.Context, target known, next func(b []byte, stream uint32) []byte) Tally {
	c, _, err := enterAs(ctx, a.guests["streamer"], target.addr, nodeid.NewKey(random), wire.Hello_CALLS, nil)
	if err != nil {
		return refused(err)
	}
	var b []byte
	turns, ended := c.Flood(floodFor, func(turn int) []byte {
		if ctx.Err() != nil {
			return nil
		}
		b = b[:0]
		for i := range inTurn {
			b = next(b, uint32(2*(turn*inTurn+i)+1))
		}
		return b
	})
	t := Tally{Tried: int64(turns * inTurn)}
	switch {
	case ended:
		t.Refused++
	case t.Tried > maxFlood:
		t.Believed++
	}
	return t
}

func (a *attacker) resets(ctx context.Context, target known) Tally {
	headers, canceled := attack.CallHeaders(query.Admin_Here_FullMethodName), []byte{0, 0, 0, 8}
	return a.flood(ctx, target, func(b []byte, stream uint32) []byte {
		b = attack.AppendFrame(b, attack.FrameHeaders, attack.EndHeaders, stream, headers)
		return attack.AppendFrame(b, attack.FrameReset, 0, stream, canceled)
	})
}

func (a *attacker) pings(ctx context.Context, target known) Tally {
	return a.flood(ctx, target, func(b []byte, stream uint32) []byte {
		return attack.AppendFrame(b, attack.FramePing, 0, 0, binary.BigEndian.AppendUint64(nil, uint64(stream)))
	})
}

func (a *attacker) settings(ctx context.Context, target known) Tally {
	window := []byte{0, 4, 0, 1, 0, 0} // SETTINGS_INITIAL_WINDOW_SIZE, 64 KiB
	return a.flood(ctx, target, func(b []byte, _ uint32) []byte {
		return attack.AppendFrame(b, attack.FrameSettings, 0, 0, window)
	})
}

// smallFrames sends frames that need no answer.
func (a *attacker) smallFrames(ctx context.Context, target known) Tally {
	one := []byte{0, 0, 0, 1, 0}
	return a.flood(ctx, target, func(b []byte, stream uint32) []byte {
		if stream%4 == 1 {
			return attack.AppendFrame(b, attack.FramePriority, 0, stream+2, one)
		}
		return attack.AppendFrame(b, attack.FrameWindow, 0, 0, []byte{0, 0, 0, 1})
	})
}

// endlessHeaders begins the headers of a call, and continues them without an end.
func (a *attacker) endlessHeaders(ctx context.Context, target known) Tally {
	begun, piece := false, append([]byte{0x00, 1, 'x', 100}, make([]byte, 100)...)
	return a.flood(ctx, target, func(b []byte, stream uint32) []byte {
		if !begun {
			begun = true
			return attack.AppendFrame(b, attack.FrameHeaders, 0, stream,
				attack.CallHeaders(query.Admin_Here_FullMethodName))
		}
		return attack.AppendFrame(b, attack.FrameContinuation, 0, 1, piece)
	})
}
