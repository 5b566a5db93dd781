"""The only importers of pydantic: what comes from outside, validated, and the shapes of documents as JSON Schemas."""
