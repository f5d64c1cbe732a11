-- The codes that a person redeemed, for the export of what the store keeps about them.
CREATE INDEX redemption_by_owner ON redemption (owner, code_hash);
