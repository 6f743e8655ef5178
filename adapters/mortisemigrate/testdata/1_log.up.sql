CREATE TABLE log (what text);
