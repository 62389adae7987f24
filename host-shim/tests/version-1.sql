CREATE TABLE plan_execute_schema (version BIGINT PRIMARY KEY);
CREATE TABLE plan_execute_sessions (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_ms BIGINT NOT NULL,
    entries BIGINT NOT NULL, lines BIGINT NOT NULL, newest TEXT, header BLOB, tail BLOB);
CREATE TABLE plan_execute_entries (session_id TEXT NOT NULL REFERENCES plan_execute_sessions (id) ON DELETE CASCADE,
    id TEXT NOT NULL, ordinal BIGINT NOT NULL, parent TEXT, line BIGINT NOT NULL, place BIGINT NOT NULL, custom_type TEXT,
    timestamp_ms BIGINT, encoding BIGINT NOT NULL, payload BLOB NOT NULL, PRIMARY KEY (session_id, id));
CREATE UNIQUE INDEX plan_execute_entries_order ON plan_execute_entries (session_id, ordinal);
CREATE UNIQUE INDEX plan_execute_entries_line ON plan_execute_entries (session_id, line, place);
CREATE INDEX plan_execute_entries_type ON plan_execute_entries (session_id, line, custom_type, place);
CREATE TABLE plan_execute_inherited (session_id TEXT NOT NULL REFERENCES plan_execute_sessions (id) ON DELETE CASCADE,
    line BIGINT NOT NULL, custom_type TEXT NOT NULL, entry TEXT NOT NULL, PRIMARY KEY (session_id, line, custom_type));
INSERT INTO plan_execute_schema VALUES (1);
INSERT INTO plan_execute_sessions VALUES ('s', 'old', 1, 2, 1, 'e2', NULL, NULL);
INSERT INTO plan_execute_entries VALUES ('s', 'e1', 0, NULL, 1, 0, 'test/plan', 1, 0, CAST('"1"' AS BLOB));
INSERT INTO plan_execute_entries VALUES ('s', 'e2', 1, 'e1', 1, 1, 'test/plan', 2, 0, CAST('"2"' AS BLOB));
