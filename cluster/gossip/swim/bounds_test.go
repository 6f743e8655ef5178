package swim

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/memberlist"

	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

func TestMetaAtItsBounds(t *testing.T) {
	text := func(n int) string { return strings.Repeat("t", n) }
	arrives := func(m gossip.Meta) bool {
		m.Instance = nodeidtest.ID(1)
		got, err := decodeMeta(appendMeta(nil, m))
		return err == nil && got == m
	}
	limits.AtMost(t, "MaxNameBytes", gossip.MaxNameBytes, func(n int) bool { return arrives(gossip.Meta{Name: text(n)}) })
	limits.AtMost(t, "MaxZoneBytes", gossip.MaxZoneBytes, func(n int) bool { return arrives(gossip.Meta{Zone: text(n)}) })
	limits.AtMost(t, "MaxAddrBytes", gossip.MaxAddrBytes, func(n int) bool { return arrives(gossip.Meta{Addr: text(n)}) })
	limits.AtMost(t, "maxAt", uint64(maxAt), func(n uint64) bool { return arrives(gossip.Meta{At: n}) })
	limits.AtMost(t, "maxMetaBytes", maxMetaBytes, func(n int) bool {
		b := appendMeta(nil, gossip.Meta{Instance: nodeidtest.ID(1)})
		_, err := decodeMeta(append(b, make([]byte, n-len(b))...))
		return err == nil
	})
	limits.AtMost(t, "maxMemberName", maxMemberName, func(n int) bool {
		e := events{&Gossip{roster: newRoster(maxMembers)}}
		return e.NotifyAlive(&memberlist.Node{Name: text(n)}) == nil
	})
	limits.AtMost(t, "maxPacketBytes", maxPacketBytes, func(n int) bool {
		return sound(append([]byte{msgPing}, make([]byte, n-1)...))
	})
}

// The last byte of a stream that is as long as it may be arrives.
func TestAStreamAtItsBound(t *testing.T) {
	limits.AtMost(t, "maxExchangeBytes", maxExchangeBytes, func(n int) bool {
		all := append(header(0, 0), make([]byte, n-len(header(0, 0)))...)
		got := make([]byte, n)
		_, err := io.ReadFull(newExchange(&limits.FailingConn{Before: all, Err: io.EOF}), got)
		return err == nil && bytes.Equal(got, all)
	})
}
