"""Kafka: settings, clients, topics, reading and publishing."""
