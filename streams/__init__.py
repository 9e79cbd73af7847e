"""The hops: stream processors, services, engines and task sources."""
