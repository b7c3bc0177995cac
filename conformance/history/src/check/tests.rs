//! The judge is judged.
