package planted

// secrets are the bugs of secrets, certificates and the rights that they carry.
func secrets() []Bug {
	return []Bug{
		{Name: "pattern-is-prefix", Room: "internal/capability", Hazard: "none", Some: true, Breaks: "the right to lock cron is the right to lock cron-admin"},
		{Name: "listing-outside", Room: "internal/capability", Hazard: "none", Breaks: "the right to read one prefix is the right to list all that contain it"},
		{Name: "any-order-accepted", Room: "internal/capability", Hazard: "none", Breaks: "one set of rights has several texts, and a session is not found again by the hash"},
		{Name: "any-spelling-accepted", Room: "internal/capability", Hazard: "none", Breaks: "one pattern has several spellings, and one set of rights several texts"},
		{Name: "guest-serves", Room: "internal/credentials", Hazard: "none", Some: true, Breaks: "a guest poses as an instance, takes the sessions of other guests and confirms their locks"},
		{Name: "text-of-the-leaf", Room: "internal/credentials", Hazard: "none", Some: true, Breaks: "a guest writes its rights into the certificate that it signs itself"},
		{Name: "intermediate-signs", Room: "internal/credentials", Hazard: "none", Some: true, Breaks: "a guest signs another guest, with any rights"},
		{Name: "until-ignored", Room: "internal/credentials", Hazard: "none", Breaks: "a derived secret is accepted after its end"},
		{Name: "server-name-ignored", Room: "internal/credentials", Hazard: "none", Breaks: "all derived secrets stop working at the second step of a rotation, not at the third"},
		{Name: "names-not-checked-on-accept", Room: "internal/credentials", Hazard: "none", Some: true, Nodes: "TestOtherServicesOfTheAuthorityStayOutside", Breaks: "any service with a certificate of the same authority comes in as an instance"},
		{Name: "names-not-checked-on-dial", Room: "internal/credentials", Hazard: "none", Some: true, Breaks: "any service with a certificate of the same authority is believed to be an instance"},
		{Name: "chosen-config-unchecked", Room: "internal/credentials", Hazard: "none", Breaks: "what GetConfigForClient returns is a way around the list of names"},
		{Name: "tls-without-names", Room: "internal/credentials", Hazard: "none", Breaks: "certificates without a list of names are accepted, and the whole authority is trusted"},
		{Name: "many-uris", Room: "internal/credentials", Hazard: "none", Breaks: "a certificate with several SPIFFE IDs is each of them"},
		{Name: "recheck-ignores-time", Room: "internal/credentials", Hazard: "none", Breaks: "a connection lives on when its certificate has ended or its authority was taken away"},
		{Name: "leaf-names-cluster", Room: "internal/credentials", Hazard: "none", Breaks: "every stranger that reaches the port reads the label of the cluster"},
		{Name: "weak-secret-accepted", Room: "internal/credentials", Hazard: "none", Breaks: "a phrase is a secret, and is guessed offline from the certificate"},
		{Name: "not-stretched", Room: "internal/credentials", Hazard: "none", Breaks: "guesses at a secret that was not generated cost nothing"},
		{Name: "dials-any-tier", Room: "transport", Hazard: "none", Some: true, Breaks: "what is dialed may be a guest, which then answers as an instance does"},
		{Name: "guest-leaves-an-address", Room: "transport", Hazard: "none", Breaks: "a guest has instances dial the addresses that it names"},
		{Name: "guest-speaks-as-instance", Room: "transport", Hazard: "none", Some: true, Breaks: "raft messages, snapshots and gossip of a guest are believed"},
		{Name: "certificate-outlived", Room: "transport", Hazard: "none", Breaks: "a connection lives on when the certificate that it stands on has ended"},
		{Name: "connections-not-rechecked", Room: "transport", Hazard: "none", Breaks: "a certificate that was withdrawn stays good for as long as its connections live"},
		{Name: "keeper-ignores-rights", Room: "session", Hazard: "none", Some: true, Nodes: "TestAGuestMayDoWhatItsTextSays", Breaks: "a guest takes any lock"},
		{Name: "only-the-first-key", Room: "session", Hazard: "none", Breaks: "a guest takes any lock beside one that it may take"},
		{Name: "capability-not-bound", Room: "session", Hazard: "none", Some: true, Breaks: "a session that was opened under one capability goes on under another"},
		{Name: "circle-shows-all", Room: "session", Hazard: "none", Breaks: "a guest reads in a deadlock the keys that it may not see"},
		{Name: "guest-secret-starts", Room: ".", Hazard: "none", Nodes: "TestDerivedSecretsAtStart", Breaks: "an instance starts with the secret of a guest"},
		{Name: "member-founds", Room: ".", Hazard: "none", Nodes: "TestDerivedSecretsAtStart", Breaks: "an instance with a member's secret takes part in founding a group"},
		{Name: "node-keeps-secret", Room: ".", Hazard: "none", Nodes: "TestSecretsAreNotPrinted", Breaks: "a Node that is printed shows its secret"},
	}
}
