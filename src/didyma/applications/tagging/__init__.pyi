from didyma.applications.tagging.tagger import TrigramTagger as TrigramTagger
