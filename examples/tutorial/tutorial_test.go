package main

func Example() {
	main()
	// Output:
	// order 42 is reserved
	// the lock is held by orders-0
	// orders-0 has lost the lock: true
	// orders-1 has a higher token: true
	// the late write is refused: true
	// order 42 is paid
}
