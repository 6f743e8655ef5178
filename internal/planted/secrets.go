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
		{Name: "guest-secret-starts", Room: ".", Hazard: "none", Nodes: "TestDerivedSecretsAtStart", Breaks: "an instance starts with the secret of a guest"},
		{Name: "member-founds", Room: ".", Hazard: "none", Nodes: "TestDerivedSecretsAtStart", Breaks: "an instance with a member's secret takes part in founding a group"},
		{Name: "node-keeps-secret", Room: ".", Hazard: "none", Nodes: "TestSecretsAreNotPrinted", Breaks: "a Node that is printed shows its secret"},
	}
}
