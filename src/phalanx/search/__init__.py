"""Which order of repair is best?"""
