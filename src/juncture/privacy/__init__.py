"""The trust boundary: what a release costs, the ledger, the noise, and the one door."""
