package attack

import (
	"context"
	"encoding/binary"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// Frame sends the encoded bytes of one frame on a link, behind their length.
func (c *Conn) Frame(b []byte) error {
	_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

// Begin announces a frame of that many bytes, of which only b comes.
func (c *Conn) Begin(size int, b []byte) error {
	_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(size)), b...))
	return err
}

// rest is the connection with what was read ahead.
type rest struct{ *Conn }

func (r rest) Read(b []byte) (int, error) { return r.in.Read(b) }

// Calls makes a client of a connection that was greeted for calls. end closes both.
func (c *Conn) Calls() (client wire.PeerClient, end func(), err error) {
	used := false
	cc, err := grpc.NewClient("passthrough:///victim",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // TLS, if any, is there already
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if used {
				return nil, net.ErrClosed
			}
			used = true
			return rest{c}, nil
		}))
	if err != nil {
		return nil, nil, err
	}
	return wire.NewPeerClient(cc), func() { cc.Close(); c.Close() }, nil
}
