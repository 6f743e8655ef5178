//go:build race

package mortisetest_test

// large is the number of nodes of a large cluster. It is just large enough that New sets Founders,
// because each handshake takes ten times as long with the race detector.
const large = 20
