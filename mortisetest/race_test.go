//go:build race

package mortisetest_test

// large is the number of nodes of a large cluster. It is large enough that New sets Founders. It is
// small because with the race detector each handshake takes ten times as long.
const large = 20
