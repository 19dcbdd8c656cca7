-- On PostgreSQL the two long tables have no foreign key to their trials: one would look each row up by itself, which takes
-- longer than storing it. These triggers keep the same promise once a statement.
CREATE FUNCTION assay_require_trials() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Locked as a foreign key does it: nobody deletes such a trial before these rows are committed.
    IF (SELECT COUNT(*) FROM (
            SELECT 1 FROM trials WHERE id IN (SELECT DISTINCT trial_id FROM added) FOR KEY SHARE) AS found)
       < (SELECT COUNT(DISTINCT trial_id) FROM added) THEN
        RAISE foreign_key_violation USING MESSAGE = 'rows in ' || TG_TABLE_NAME || ' belong to a trial that does not exist';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER require_trials AFTER INSERT ON executions
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION assay_require_trials();

CREATE TRIGGER require_trials AFTER INSERT ON measurements
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION assay_require_trials();

CREATE FUNCTION assay_delete_rows_of_trials() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM measurements WHERE trial_id = ANY (ARRAY(SELECT id FROM gone));
    DELETE FROM executions WHERE trial_id = ANY (ARRAY(SELECT id FROM gone));
    RETURN NULL;
END $$;

CREATE TRIGGER delete_rows AFTER DELETE ON trials
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION assay_delete_rows_of_trials();
