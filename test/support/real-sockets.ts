// Imported for its side effect: node:http is not replaced by nock, whatever else the test imports.
import nock from 'nock';

nock.restore();
