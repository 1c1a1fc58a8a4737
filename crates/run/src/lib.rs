//! One run, whole: plan, guard, phases, load beside observation, the record.
