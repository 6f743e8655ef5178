package attack

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// Frame sends the encoded bytes of a frame on a link, preceded by their length.
func (c *Conn) Frame(b []byte) error {
	_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

// Begin sends the length of a frame of size bytes, followed only by b.
func (c *Conn) Begin(size int, b []byte) error {
	_, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(size)), b...))
	return err
}

// Field returns a field of a frame, as a link carries it. The field has the given name in the
// message Frame of peer.proto, and the type bytes.
func Field(name protoreflect.Name, b []byte) []byte {
	field := (&wire.Frame{}).ProtoReflect().Descriptor().Fields().ByName(name)
	return protowire.AppendBytes(protowire.AppendTag(nil, field.Number(), protowire.BytesType), b)
}

// Drain discards what the other side sends until the connection ends.
func (c *Conn) Drain() { _, _ = io.Copy(io.Discard, c.in) }

// Client calls an instance.
type Client struct {
	wire.PeerClient
	cc *grpc.ClientConn
}

// Found opens a stream for a question about the founding of the group. The caller sends pieces of
// [Question].
func (c *Client) Found(ctx context.Context) (grpc.BidiStreamingClient[wire.Question, wire.Answer], error) {
	stream, err := c.cc.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
		query.Cluster_Found_FullMethodName)
	return &grpc.GenericClientStream[wire.Question, wire.Answer]{ClientStream: stream}, err
}

// Question returns the encoded question about the founding with the given body.
func Question(body []byte) []byte {
	b, _ := proto.Marshal(&query.FoundRequest{Question: body}) // cannot fail
	return b
}

// Calls makes a gRPC client of a connection whose greeting was for gRPC calls. The function end
// closes the client and the connection.
func (c *Conn) Calls() (client *Client, end func(), err error) {
	used := false
	cc, err := grpc.NewClient("passthrough:///victim",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // if TLS is needed, c has it already
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if used {
				return nil, net.ErrClosed
			}
			used = true
			return c, nil
		}))
	if err != nil {
		return nil, nil, err
	}
	return &Client{wire.NewPeerClient(cc), cc}, func() { cc.Close(); c.Close() }, nil
}

// Opened waits for the answer to an Open command with the given nonce, and returns the session, or
// 0 if no session was opened within d.
func (c *Conn) Opened(nonce [16]byte, d time.Duration) uint64 {
	_ = c.SetReadDeadline(time.Now().Add(d))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	for {
		var head [4]byte
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			return 0
		}
		n := binary.BigEndian.Uint32(head[:])
		if n == 0 {
			continue
		}
		if n > 1<<20 {
			return 0
		}
		frame := make([]byte, n)
		if _, err := io.ReadFull(c.in, frame); err != nil {
			return 0
		}
		// An answer consists of the nonce, a code that is 0 for success, and the session.
		if _, after, found := bytes.Cut(frame, nonce[:]); found && len(after) > 1 {
			session, _ := binary.Uvarint(after[1:])
			return session
		}
	}
}
