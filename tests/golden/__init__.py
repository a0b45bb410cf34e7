"""Golden numbers: results of the public interface, frozen, and the test that compares."""
