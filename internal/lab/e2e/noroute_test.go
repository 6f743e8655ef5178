package e2e

import (
	"context"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/outside"
)

// A name in Join also has an address of IPv6, to which this machine has no route. Another machine
// may listen there, so founding waits, and the text has the error number and the step.
func TestAnAddressWithoutARouteIsToldWithItsNumber(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		f.alter = func(w *outside.World) {
			dial := w.Dial
			w.Dial = func(ctx context.Context, address string) (net.Conn, error) {
				if strings.HasPrefix(address, "[2001:db8::1]") {
					return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}
				}
				return dial(ctx, address)
			}
			w.Resolve = func(_ context.Context, h string) ([]string, error) {
				if h == "orders.example" {
					return []string{host(0), "2001:db8::1"}, nil
				}
				return []string{h}, nil
			}
		}
		for i := range 3 {
			c := f.config(i, 3)
			c.Join = append(c.Join, "orders.example:7947")
			f.start(i, c)
		}
		time.Sleep(10 * time.Second)
		const want = "orders.example:7947 ([2001:db8::1]:7947) cannot be asked: this machine has no address or no route " +
			"for it (network is unreachable): repair its network, or take the address out of Join"
		for _, n := range f.nodes {
			if s := n.Status(); !strings.Contains(s.Waiting, want) {
				t.Errorf("it waits for\n%s, want in it\n%s", s.Waiting, want)
			}
		}
	})
}
