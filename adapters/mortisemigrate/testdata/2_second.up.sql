INSERT INTO log VALUES ('second');
