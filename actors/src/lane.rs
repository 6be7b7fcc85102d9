//! What stands in front of one provider: turns, breaker, holds, and the judgement of what it answers.
