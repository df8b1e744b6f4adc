"""The other end of the export: receive spans, keep the last traces, draw them as trees."""
